-- Where reading a list goes on: a token or tag of the system's; NULL: at the beginning.
ALTER TABLE crm_connections ADD COLUMN mark TEXT;
-- What a record said when it was last written: so that it is known who changed what since.
ALTER TABLE crm_refs ADD COLUMN base TEXT;
