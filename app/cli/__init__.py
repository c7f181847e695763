"""The console command , one file per group of commands."""
