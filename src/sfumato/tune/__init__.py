"""The group size that is right for a table [KCG12]."""
