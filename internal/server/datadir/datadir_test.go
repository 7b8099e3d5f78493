package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Other users of the machine have no access to a data folder: what they could read is taken from them, and a folder in which they could
// write is refused with the remedy.
func TestLock_FolderOfOthers(t *testing.T) {
	for mode, refused := range map[os.FileMode]bool{0o700: false, 0o750: false, 0o755: false, 0o711: false, 0o777: true, 0o770: true,
		0o702: true} {
		path := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		lock, err := Lock(path)
		if lock != nil {
			_ = lock.Close()
		}
		info, _ := os.Stat(path)
		switch {
		case refused && (!errors.Is(err, ErrExposed) || !strings.Contains(err.Error(), "chmod 700 "+path)):
			t.Errorf("%04o: %v", mode, err)
		case refused && info.Mode().Perm() != mode:
			t.Errorf("%04o: the refused folder was changed to %04o", mode, info.Mode().Perm())
		case !refused && (err != nil || info.Mode().Perm() != 0o700):
			t.Errorf("%04o: %v, now %04o", mode, err, info.Mode().Perm())
		}
	}
}

func TestLock_Twice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	lock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if second, err := Lock(path); !errors.Is(err, ErrInUse) {
		t.Errorf("%v %v", second, err)
	}
}
