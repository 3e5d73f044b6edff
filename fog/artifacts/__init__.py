"""What a testbed is made of besides Debian's packages, built once from public registries into a cache."""
