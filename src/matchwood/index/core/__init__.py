"""What all indexes share: protocol, registry, settings, the frame they derive from, scratch."""
