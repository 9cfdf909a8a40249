"""Tables in cells: cut by the top of the tree that groups are made with, sanitized one after the other or side by side.

A file goes through twice: once to learn what holds for all its rows, once to be cut. Every engine calls the same
function on the same cells, so that a seed gives the same table in memory, out of core and on a cluster.
"""
