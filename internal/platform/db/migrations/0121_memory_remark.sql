-- Notes of people and text messages are found by searches as facts are. id: that of the note or message, with mem_ before it. They are
-- forgotten when the six months of memory are over; what is there already is found once its words are counted, in the background.
ALTER TABLE memory_facts ADD COLUMN kind TEXT NOT NULL DEFAULT 'fact';
ALTER TABLE memory_facts ADD COLUMN call_id TEXT;
CREATE INDEX memory_facts_call ON memory_facts (org_id, call_id) WHERE call_id IS NOT NULL;

INSERT INTO memory_facts (org_id, phone, id, text, created_by, created_at, expires_at, kind, call_id)
	SELECT n.org_id, CASE c.direction WHEN 'inbound' THEN c.from_number WHEN 'outbound' THEN c.to_number ELSE '' END, 'mem_' || substr(n.id, 6),
		n.body, n.author_id, n.created_at, n.created_at + 15811200000000, 'note', n.call_id
	FROM notes n JOIN calls c ON c.org_id = n.org_id AND c.id = n.call_id;
INSERT INTO memory_facts (org_id, phone, id, text, created_by, created_at, expires_at, kind)
	SELECT org_id, CASE direction WHEN 'inbound' THEN from_number ELSE to_number END, 'mem_' || substr(id, 5), body, COALESCE(user_id, ''),
		created_at, created_at + 15811200000000, 'sms'
	FROM messages WHERE automatic = FALSE AND body <> '' AND (direction = 'inbound' OR sent_at IS NOT NULL);
