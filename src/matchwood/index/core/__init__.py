"""What all indexes share: protocol, registry, settings, the frames they derive from, scratch."""
