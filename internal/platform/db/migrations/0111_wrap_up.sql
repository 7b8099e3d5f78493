-- When the agent of an offer has, or will have, done with what is left of the call after it.
ALTER TABLE queue_offers ADD COLUMN wrapped_at BIGINT;
