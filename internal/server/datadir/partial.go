package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// partialMark is a file in a folder that is not complete. The process that fills the folder has locked it.
const partialMark = "INCOMPLETE"

// ErrIncomplete is returned for a folder that is a backup that was not finished.
var ErrIncomplete = errors.New("this backup was not finished")

// CheckComplete returns ErrIncomplete for a folder between BeginPartial and EndPartial.
func CheckComplete(folder string) error {
	if _, err := os.Lstat(filepath.Join(folder, partialMark)); err != nil {
		return nil
	}
	return fmt.Errorf("%w (%s); use another one", ErrIncomplete, folder)
}

// BeginPartial creates a folder that counts as incomplete until EndPartial. It replaces one that a killed process left. The caller closes
// the file in the end.
func BeginPartial(folder string) (*os.File, error) {
	err := os.Mkdir(folder, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if err = removeAbandoned(folder); err == nil {
			err = os.Mkdir(folder, 0o700)
		}
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(folder, partialMark), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	return f, err
}

// removeAbandoned removes an incomplete folder that no process fills.
func removeAbandoned(folder string) error {
	f, err := os.OpenFile(filepath.Join(folder, partialMark), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%s exists and is no unfinished backup; remove it, or give another folder with --to", folder)
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return fmt.Errorf("another backup to %s is being made", folder)
	}
	return os.RemoveAll(folder)
}

// EndPartial makes an incomplete folder complete under its final name, after everything in it is on the disk.
func EndPartial(folder, final string) error {
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncFolder(path)
	})
	if err == nil {
		err = os.Rename(folder, final)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(final))
	}
	if err == nil {
		err = os.Remove(filepath.Join(final, partialMark))
	}
	if err != nil {
		return err
	}
	return syncFolder(final)
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
