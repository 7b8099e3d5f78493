package db_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"testing"

	"soniq/internal/platform/db"
)

// startPooler starts a proxy in front of a PostgreSQL server. Like PgBouncer, it sends its clients its own
// number instead of the process ID of the server. It returns the address of a database behind it.
func startPooler(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	server := u.Host
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go pool(client, server)
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// pool forwards a connection, and changes the message BackendKeyData.
func pool(client net.Conn, server string) {
	defer client.Close()
	to, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(to, client); _ = to.Close() }()
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(to, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(to, body); err != nil {
			return
		}
		if head[0] == 'K' {
			binary.BigEndian.PutUint32(body, 1<<30)
		}
		if _, err := client.Write(append(head, body...)); err != nil {
			return
		}
	}
}

func TestOpen_BehindPoolerPreparesNothing(t *testing.T) {
	t.Parallel()
	address := os.Getenv("SONIQ_TEST_POSTGRES")
	if address == "" {
		t.Skip("SONIQ_TEST_POSTGRES is not set")
	}
	for _, c := range []struct {
		name, address string
		prepares      bool
	}{
		{"directly", address, true},
		{"pooler", startPooler(t, address), false},
		{"pooler with a mode in the address", startPooler(t, address) + "&default_query_exec_mode=cache_statement", true},
	} {
		d, err := db.Open(t.Context(), c.address)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		defer d.Close()
		var n int
		err = d.Tx(t.Context(), func(tx db.Querier) error {
			for range 3 {
				if err := tx.QueryRow(t.Context(), `SELECT 1 + CAST($1 AS INTEGER)`, 1).Scan(&n); err != nil {
					return err
				}
			}
			return tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%1 + CAST%'
				AND statement NOT LIKE '%pg_prepared%'`).Scan(&n)
		})
		if err != nil || (n > 0) != c.prepares {
			t.Errorf("%s: %d prepared statements, %v", c.name, n, err)
		}
	}
}
