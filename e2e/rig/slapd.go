package rig

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Person is an entry of a directory, an address book or a list.
type Person struct {
	ID, Name, Company, Email string
	Phones                   []string // in the notation of the directory
}

// Slapd is an OpenLDAP server. It requires a bind, and returns more than 500 entries only page by page.
type Slapd struct {
	*Daemon
	Secure    string // host:port of ldaps
	Authority string // PEM of the certificate that signed its own
	Base      string
	Reader    string // a DN that may read, with Password
	Password  string

	config string
}

const slapdConfig = `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile %[1]s/slapd.pid
TLSCertificateFile %[2]s
TLSCertificateKeyFile %[3]s
sizelimit size.soft=500 size.hard=500 size.prtotal=unlimited
database mdb
maxsize 1073741824
suffix "dc=example,dc=com"
rootdn "cn=admin,dc=example,dc=com"
rootpw secret
directory %[1]s/db
index objectClass eq
index telephoneNumber,mobile eq,sub
index mail eq
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
`

// StartSlapd starts a directory that contains people.
func StartSlapd(t testing.TB, people []Person) *Slapd {
	t.Helper()
	path, err := exec.LookPath("slapd")
	if err != nil {
		path = "/usr/sbin/slapd"
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("slapd is not installed")
	}
	dir, c := t.TempDir(), NewCertificate(t)
	s := &Slapd{Secure: loopback(t), Base: "dc=example,dc=com", Reader: "cn=reader,dc=example,dc=com", Password: "let me read",
		config: filepath.Join(dir, "slapd.conf")}
	authority, err := os.ReadFile(c.Authority)
	if err != nil {
		t.Fatal(err)
	}
	s.Authority = string(authority)
	if err := os.Mkdir(filepath.Join(dir, "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.config, fmt.Appendf(nil, slapdConfig, dir, c.Cert, c.Key), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "people.ldif")
	if err := os.WriteFile(file, []byte(s.ldif(people)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "", path, "-T", "add", "-q", "-f", s.config, "-l", file)
	address := loopback(t)
	s.Daemon = daemon(t, address, path, "-d", "0", "-f", s.config, "-h", "ldap://"+address+" ldaps://"+s.Secure)
	return s
}

// ldif returns the directory as a file (RFC 2849).
func (s *Slapd) ldif(people []Person) string {
	var b strings.Builder
	fmt.Fprintf(&b, "dn: %s\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: Example\n\n", s.Base)
	fmt.Fprintf(&b, "dn: %s\nobjectClass: person\ncn: reader\nsn: reader\nuserPassword: %s\n\n", s.Reader, s.Password)
	for _, p := range people {
		b.WriteString(s.Entry(p))
	}
	return b.String()
}

// Entry returns a person as LDIF.
func (s *Slapd) Entry(p Person) string {
	var b strings.Builder
	put := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s:: %s\n", name, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
	fmt.Fprintf(&b, "dn: uid=%s,%s\nobjectClass: inetOrgPerson\n", p.ID, s.Base)
	put("cn", p.Name)
	put("sn", p.Name)
	put("o", p.Company)
	put("mail", p.Email)
	for i, number := range p.Phones {
		put([]string{"telephoneNumber", "mobile", "homePhone"}[i%3], number)
	}
	return b.String() + "\n"
}

// Change changes the directory with its own tools: LDIF with or without changetype.
func (s *Slapd) Change(ldif string) {
	s.T.Helper()
	run(s.T, ldif, "ldapmodify", "-a", "-x", "-H", "ldap://"+s.Address, "-D", "cn=admin,"+s.Base, "-w", "secret")
}
