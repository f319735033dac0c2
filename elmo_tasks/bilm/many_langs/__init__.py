"""Model folders of ELMoForManyLangs (Che et al. 2018): read as options and weights of a `Bilm`."""
