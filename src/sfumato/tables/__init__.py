"""Tables in and out: schema, codec, frames, files."""
