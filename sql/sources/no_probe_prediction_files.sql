-- probe_prediction_files of a warehouse in which no encoding of the centre has been measured yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS benchmark,
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS subset,
    NULL::VARCHAR AS sample_id,
    NULL::VARCHAR AS group_id,
    NULL::VARCHAR AS target,
    NULL::VARCHAR AS probe,
    NULL::INTEGER AS fold,
    NULL::VARCHAR AS truth,
    NULL::VARCHAR AS predicted
WHERE false;
