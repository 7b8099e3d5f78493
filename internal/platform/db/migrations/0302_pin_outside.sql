-- Wrong PINs of outside callers are counted by themselves, so that they do not lock the mailbox for its user's telephones.
ALTER TABLE mailbox_pins ADD COLUMN outside_wrong INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mailbox_pins ADD COLUMN outside_locks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mailbox_pins ADD COLUMN outside_locked_until BIGINT;
