package op

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"testing"

	"soniq/internal/platform/limit"
)

// file is the content of a download, and counts how often it was closed.
type file struct {
	io.ReadSeeker
	closed *int
}

func (f file) Close() error { *f.closed++; return nil }

// A refused download closes its file. Downloads of other organisations go on.
func TestFileStream_AtOnce(t *testing.T) {
	t.Parallel()
	var c Pipeline
	closed := 0
	open := func(org, address string) error {
		ctx, cancel := context.WithCancel(WithClientAddress(withTransfers(context.Background(), &c.transfers),
			netip.MustParseAddr(address)))
		cancel() // nobody waits for a place
		_, err := FileStream(ctx, File{Org: org, Content: file{strings.NewReader("x"), &closed}})
		return err
	}
	for i := range limit.DownloadsOfOrganisation.Int() {
		if err := open("org_1", []string{"192.0.2.1", "192.0.2.2"}[i%2]); err != nil {
			t.Fatalf("download %d: %v", i, err)
		}
	}
	if err := open("org_1", "192.0.2.3"); err == nil || closed != 1 {
		t.Errorf("one more of the organisation: %v, %d files closed", err, closed)
	}
	if err := open("org_2", "192.0.2.2"); err == nil || closed != 2 {
		t.Errorf("one more of the address: %v, %d files closed", err, closed)
	}
	if err := open("org_2", "192.0.2.3"); err != nil {
		t.Errorf("another organisation: %v", err)
	}
}
