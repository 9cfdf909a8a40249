"""Risk of a method on a table, measured on shadow releases that each leave out other people."""
