package op

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Settings of connections to other systems: which members are secrets, and where they are sent.

// MaskedSetting is shown in place of a secret. In a request it leaves the secret unchanged.
const MaskedSetting = "********"

// secretSettings are the members of settings that are never shown. All values of headers are secrets too.
var secretSettings = []string{"password", "token", "auth_token", "api_key", "api_token", "secret", "client_secret"}

// placeSettings are the members of settings that say where secrets are sent.
var placeSettings = []string{"url", "api_url", "login_url", "host", "port", "tls", "start_tls", "domain", "subdomain", "company_domain"}

// MaskSettings returns settings with their secrets masked.
func MaskSettings(settings map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range settings {
		inner, isObject := v.(map[string]any)
		switch {
		case name == "headers" && isObject:
			hidden := map[string]any{}
			for h := range inner {
				hidden[h] = MaskedSetting
			}
			out[name] = hidden
		case isObject:
			out[name] = MaskSettings(inner)
		case slices.Contains(secretSettings, name) && v != "":
			out[name] = MaskedSetting
		default:
			out[name] = v
		}
	}
	return out
}

// MergeSettings applies a merge patch to settings (RFC 7396). MaskedSetting leaves a secret unchanged. The member body
// of a request is replaced as a whole.
func MergeSettings(old, change map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range old {
		out[name] = v
	}
	for name, v := range change {
		inner, isObject := v.(map[string]any)
		was, _ := old[name].(map[string]any)
		switch {
		case v == nil:
			delete(out, name)
		case v == MaskedSetting:
		case isObject && name != "body":
			out[name] = MergeSettings(was, inner)
		default:
			out[name] = v
		}
	}
	return out
}

// CheckMovedSettings returns the violations of a change of settings that would send kept secrets to another place. See
// SecretsAgain.
func CheckMovedSettings(old, change map[string]any) []Violation {
	merged := MergeSettings(old, change)
	var kept []string
	given := secretsOf(change, "settings.")
	for path := range secretsOf(merged, "settings.") {
		if v, ok := given[path]; !ok || v == MaskedSetting {
			kept = append(kept, path)
		}
	}
	slices.Sort(kept)
	return SecretsAgain(SettingsMoved(old, merged), kept...)
}

// SettingsMoved reports whether settings lead to another place than others do.
func SettingsMoved(old, now map[string]any) bool {
	return !reflect.DeepEqual(placesOf(old, ""), placesOf(now, ""))
}

// secretsOf returns the secrets of settings by their path.
func secretsOf(settings map[string]any, path string) map[string]any {
	all := map[string]any{}
	for name, v := range settings {
		inner, isObject := v.(map[string]any)
		switch {
		case name == "headers" && isObject:
			for h, value := range inner {
				all[path+name+"."+h] = value
			}
		case isObject:
			for p, value := range secretsOf(inner, path+name+".") {
				all[p] = value
			}
		case slices.Contains(secretSettings, name) && v != "" && v != nil:
			all[path+name] = v
		}
	}
	return all
}

// placesOf returns where settings lead, by path. Of a URL only scheme and host count.
func placesOf(settings map[string]any, path string) map[string]any {
	all := map[string]any{}
	for name, v := range settings {
		if inner, isObject := v.(map[string]any); isObject {
			for p, value := range placesOf(inner, path+name+".") {
				all[p] = value
			}
		} else if slices.Contains(placeSettings, name) {
			all[path+name] = placeOf(v)
		}
	}
	return all
}

func placeOf(v any) any {
	text, ok := v.(string)
	if !ok {
		return v
	}
	return SecretPlace(text)
}

// SecretPlace returns the part of an address that says to whom a request goes: scheme, host and port in lower case. An
// address that is no URL is returned as it is.
func SecretPlace(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}
