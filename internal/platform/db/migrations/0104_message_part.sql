-- Receipts that came early are counted by carrier, and parts of long ago are found.
CREATE INDEX message_parts_unclaimed ON message_parts (org_id, carrier) WHERE message_id IS NULL;
CREATE INDEX message_parts_created ON message_parts (created_at);
