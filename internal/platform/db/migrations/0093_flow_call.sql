-- The version of the flow a call was led through.
ALTER TABLE calls ADD COLUMN flow_version INTEGER;
