-- Callbacks may lead who answers into a flow.
ALTER TABLE callbacks ADD COLUMN flow_id TEXT;
