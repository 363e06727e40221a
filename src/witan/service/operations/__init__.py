"""Operations of the catalogue, a module per subject."""
