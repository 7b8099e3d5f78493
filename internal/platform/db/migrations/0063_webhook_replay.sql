-- Which deliveries an event had, so that a range of events can be sent again to those who did not receive them.
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (org_id, event_id);

-- Attempts of a sandbox endpoint that are to be written down as failed without leaving, and the status they show.
ALTER TABLE webhooks ADD COLUMN fail_times INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN fail_status INTEGER NOT NULL DEFAULT 0;
