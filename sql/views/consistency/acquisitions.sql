-- acquisitions: how much room the units take under every acquisition, and all together.
--
-- grain   one row per benchmark, encoder and acquisition, and one for all acquisitions together
-- reads   acquisition_files
-- output  n_vectors; mean_distance: mean cosine distance between every two of them; effective_rank:
--         exp of the entropy of the singular values of the centred unit vectors: how many dimensions
--         they spread in
-- NULL    acquisition in the row of all together; effective_rank where all vectors coincide
-- source  Roy and Vetterli 2007 (effective rank)
CREATE OR REPLACE VIEW acquisitions AS
FROM main.acquisition_files;
