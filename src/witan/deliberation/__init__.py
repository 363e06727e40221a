"""The council at work: stages that talk to models through ports, as one stream of events."""
