-- unit_attributes: what is known of the units of paired benchmarks, from the attributes of their samples.
--
-- grain   one row per benchmark (of those of which acquisitions have been compared) and unit
-- reads   member_files, attributes_but
-- output  every attribute of the samples, but for one called benchmark or unit
-- NULL    an attribute in which samples of the unit differ, as its acquisition does, or which none has;
--         samples of which it is not known are passed over, as those of a dataset without that column
CREATE OR REPLACE VIEW unit_attributes AS
SELECT
    belonging.benchmark,
    belonging.unit,
    croma_only_value(COLUMNS(attributes.* EXCLUDE (sample_id)))
FROM main.member_files AS belonging
LEFT JOIN attributes_but(['benchmark', 'unit']) AS attributes
    ON attributes.sample_id = belonging.sample_id
GROUP BY belonging.benchmark, belonging.unit;
