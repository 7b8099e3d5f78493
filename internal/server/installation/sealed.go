package installation

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/seal"
)

// sealedColumns are the columns whose values verify the key of a database without a fingerprint. The associated data of each value is
// org|table|id|column.
var sealedColumns = []struct{ table, id, column string }{
	{"devices", "id", "ha1_md5"},
	{"trunks", "id", "password"},
	{"trunks", "id", "inbound_password"},
	{"webhooks", "id", "secret"},
	{"number_accounts", "id", "settings"},
	{"account_logins", "user_id", "totp"},
}

// opensSecrets reports whether the key opens the latest value of every sealed column. It is true if there are no values: the database then
// has no secret that another key has sealed.
func opensSecrets(ctx context.Context, d *db.DB, key *seal.Seal) (bool, error) {
	for _, c := range sealedColumns {
		there, err := d.HasTable(ctx, c.table)
		if err != nil {
			return false, err
		}
		if !there {
			continue
		}
		var org, id string
		var sealed []byte
		// tenant: one value of any organisation shows which key has sealed all of them
		text := fmt.Sprintf(`SELECT org_id, %[2]s, %[3]s FROM %[1]s WHERE %[3]s IS NOT NULL ORDER BY %[2]s DESC LIMIT 1`, c.table, c.id, c.column)
		err = d.Read(ctx).QueryRow(ctx, text).Scan(&org, &id, &sealed)
		if db.IsNone(err) || err == nil && len(sealed) == 0 {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("compare the master key with %s: %w", c.table, err)
		}
		if _, err := key.Unseal(sealed, []byte(org+"|"+c.table+"|"+id+"|"+c.column)); err != nil {
			return false, nil
		}
	}
	return true, nil
}

// hasOrgs reports whether the database has organisations. The table may not exist yet.
func hasOrgs(ctx context.Context, d *db.DB) (found bool, err error) {
	there, err := d.HasTable(ctx, "orgs")
	if err != nil || !there {
		return false, err
	}
	err = d.Read(ctx).QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM orgs)`).Scan(&found)
	return found, err
}
