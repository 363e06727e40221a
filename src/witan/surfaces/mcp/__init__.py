"""The council over the Model Context Protocol: tools to ask and count, resources to read."""
