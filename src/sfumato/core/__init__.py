"""What every room stands on: errors, randomness, documents, records, facts, groups of records, noise laws."""
