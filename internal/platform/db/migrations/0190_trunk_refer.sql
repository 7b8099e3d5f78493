-- Whether another exchange may transfer calls by REFER. A transfer may place a call to an outside number.
ALTER TABLE trunks ADD COLUMN allow_refer BOOLEAN NOT NULL DEFAULT FALSE;
