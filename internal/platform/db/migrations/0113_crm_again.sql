-- What a connected system was given last, as a digest: so that it is told again only what is new.
ALTER TABLE crm_syncs ADD COLUMN written TEXT;
