package rest

import (
	"strings"
	"testing"
	"testing/fstest"
)

// A build without the viewer says so, and loads no script that does not exist.
func TestDocs_BuildWithoutViewer(t *testing.T) {
	t.Parallel()
	without := docsPageFor(fstest.MapFS{"docs/page.js": {}})
	for _, part := range []string{"elements.js", "<elements-api", "VIEWER"} {
		if strings.Contains(without, part) {
			t.Errorf("the page without the viewer has %s", part)
		}
	}
	if !strings.Contains(without, "make build") || !strings.Contains(without, "/docs/page.js") {
		t.Errorf("the page without the viewer: %s", without)
	}
	if with := docsPageFor(fstest.MapFS{"docs/viewer/elements.js.gz": {}}); !strings.Contains(with, "/docs/elements.js") || !strings.Contains(with, "<elements-api") {
		t.Errorf("the page with the viewer: %s", with)
	}
}
