"""The figures of a report, as inline SVG; matplotlib is loaded when the first one is drawn."""
