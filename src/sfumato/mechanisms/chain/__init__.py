"""The chain: columns drawn one after the other, each from people who are alike in the columns before."""
