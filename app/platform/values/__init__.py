"""Values that cross HTTP, with their bounds: fields, JSON objects, pages and cursors."""
