"""What the services of the fog need set up besides their files: certificates, users, buckets, dashboards."""
