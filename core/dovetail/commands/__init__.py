"""The `dovetail` command: its subcommands, demos and the backend template.

Nothing else imports these modules, and `import dovetail` does not load them.
"""
