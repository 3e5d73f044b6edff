"""Profiles that are kept with the project; each says where its figures come from."""
