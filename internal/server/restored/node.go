package restored

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"soniq/internal/platform/db"
)

// The file node in the data folder has the name of the node, and in a second line what the name is valid for.

// nodeFacts are the facts for which the name of a node is valid. With another file or database it is the name of another node.
type nodeFacts struct {
	File     *file  `json:"file"`
	Database place  `json:"database"`
	Former   string `json:"former,omitempty"` // name before the database was copied
}

// Node is the name of this node.
type Node struct {
	Name string
	// Former is the name of the node that had this data folder before the database was copied; "" if there is none. What it held is
	// for this node to close.
	Former string
}

// nodeOf returns the node of a data folder. It gets a new name at the first start, if the folder was copied, and if the database was:
// then copied is true, or the database is at another place than before.
func nodeOf(data string, database place, copied bool) (Node, error) {
	path := filepath.Join(data, "node")
	name, facts, err := readNode(path)
	if err != nil {
		return Node{}, err
	}
	copied = copied || name != "" && facts != nil && facts.Database.copiedTo(database) != ""
	duplicate := false
	if facts != nil {
		here, err := fileAt(path)
		if err != nil {
			return Node{}, err
		}
		duplicate = facts.File.copiedTo(*here) != ""
	}
	n := Node{Name: name}
	switch {
	case copied:
		n = Node{Name: db.NewID("node"), Former: name}
	case name == "" || duplicate:
		n = Node{Name: db.NewID("node")}
	case facts != nil && facts.Database.String() == database.String():
		return Node{Name: name, Former: facts.Former}, nil
	case facts != nil:
		n.Former = facts.Former
	}
	return n, writeNode(path, n, database)
}

// readNode reads the file. Files of earlier versions have only the name; a missing file has none.
func readNode(path string) (name string, facts *nodeFacts, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("node name: %w", err)
	}
	name, rest, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if rest == "" {
		return name, nil, nil
	}
	facts = &nodeFacts{}
	if err := json.Unmarshal([]byte(rest), facts); err != nil || facts.File == nil {
		return "", nil, fmt.Errorf("node name: the second line of %s cannot be read; delete that line", path)
	}
	return name, facts, nil
}

// writeNode writes the file anew, and not over the old one, which may be a hard link into a backup.
func writeNode(path string, n Node, database place) error {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("node name: %w", err)
	}
	if err := os.WriteFile(fresh, []byte(n.Name+"\n"), 0o600); err != nil {
		return fmt.Errorf("node name: %w", err)
	}
	at, err := fileAt(fresh)
	if err != nil {
		return fmt.Errorf("node name: %w", err)
	}
	at.Path = strings.TrimSuffix(at.Path, ".new")
	facts, err := json.Marshal(nodeFacts{File: at, Database: database, Former: n.Former})
	if err == nil {
		err = os.WriteFile(fresh, []byte(n.Name+"\n"+string(facts)+"\n"), 0o600)
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return fmt.Errorf("node name: %w", err)
	}
	return nil
}
