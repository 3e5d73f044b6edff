"""Pages as Jinja templates."""
