-- The deliveries of one call are read with its steps.
CREATE INDEX webhook_deliveries_call ON webhook_deliveries (org_id, call_id) WHERE call_id IS NOT NULL;
