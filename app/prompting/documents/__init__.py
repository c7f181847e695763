"""Documents as a source: folders, files, and the passages they are cut into."""
