-- Does a place stay where it is from one scanner to another?
SELECT sample_id, place AS unit, scanner AS acquisition FROM samples;
