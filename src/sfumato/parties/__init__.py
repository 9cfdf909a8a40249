"""Several owners, one sanitized table: the session port, its engines, the protocols and the ledger [BCG10, sec. 4]."""
