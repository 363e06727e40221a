"""The council over the Model Context Protocol: tools, prompts and resources."""
