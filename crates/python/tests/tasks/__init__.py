"""Eight tasks with this module and with others, as docs/python-tasks.md has them."""
