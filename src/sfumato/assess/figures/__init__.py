"""The figures of a report, as inline SVG that is written by hand."""
