-- What a call did in queues, whatever became of it.
CREATE INDEX queue_entries_calls ON queue_entries (org_id, call_id);
