package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/store"
)

// The kinds of documents that the catalogue keeps in the store.
const (
	DocConnection = "connection"
	DocCombo      = "combo"
	DocKey        = "key"
	DocProvider   = "provider"
	DocAlias      = "alias"
	DocSettings   = "settings"
	DocProtection = "protection" // rateLimitProtection of a connection that the store does not hold (OBJ-5)
)

// SettingsID is the id of the one document of kind settings.
const SettingsID = "settings"

// DocKinds lists the kinds whose documents LoadStored reads.
func DocKinds() []string {
	return []string{DocProvider, DocConnection, DocCombo, DocAlias, DocKey, DocSettings, DocProtection}
}

// Sealer encrypts what must not lie in the store in clear text. Kind, id and field bind a value to its place, so that it
// cannot be moved to another record (DATA-1). Safe for concurrent use.
type Sealer interface {
	Seal(kind, id, field string, plain []byte) ([]byte, error)
	Unseal(kind, id, field string, sealed []byte) ([]byte, error)
}

// dataField is the name under which providerSpecificData is sealed (OBJ-6).
const dataField = "providerSpecificData"

// storedConnection is the document of a connection. The embedded fields that hold secrets are empty in it.
type storedConnection struct {
	ConnectionInput
	Sealed             map[string][]byte `json:"sealed,omitempty"` // by the name of the secret
	SealedData         []byte            `json:"sealedData,omitempty"`
	CredentialRevision uint64            `json:"credentialRevision"`
}

// Credentials returns the secrets of c under the names that plans use, the empty ones left out.
func (c *ConnectionInput) Credentials() map[string]string {
	out := map[string]string{}
	maps.Copy(out, c.Secrets)
	for name, text := range map[string]string{SecretAPIKey: c.APIKey, SecretAccessToken: c.AccessToken, SecretRefreshToken: c.RefreshToken} {
		if text != "" {
			out[name] = text
		}
	}
	maps.DeleteFunc(out, func(_, text string) bool { return text == "" })
	return out
}

// SameCredentials says whether secrets and data of two forms of a connection are equal; when not, the writer raises the
// credential revision (OBJ-9).
func (c *ConnectionInput) SameCredentials(o *ConnectionInput) bool {
	return maps.Equal(c.Credentials(), o.Credentials()) &&
		maps.EqualFunc(c.ProviderSpecificData, o.ProviderSpecificData, func(a, b json.RawMessage) bool { return string(a) == string(b) })
}

// EncodeConnection makes the document of a connection, secrets and data sealed.
func EncodeConnection(c ConnectionInput, credentialRevision uint64, s Sealer) ([]byte, error) {
	d := storedConnection{ConnectionInput: c, CredentialRevision: credentialRevision}
	d.APIKey, d.AccessToken, d.RefreshToken, d.Secrets, d.ProviderSpecificData = "", "", "", nil, nil
	for name, text := range c.Credentials() {
		sealed, err := s.Seal(DocConnection, c.ID, name, []byte(text))
		if err != nil {
			return nil, fmt.Errorf("seal %s of connection %s: %w", name, c.ID, err)
		}
		if d.Sealed == nil {
			d.Sealed = map[string][]byte{}
		}
		d.Sealed[name] = sealed
	}
	if len(c.ProviderSpecificData) > 0 {
		plain, err := json.Marshal(c.ProviderSpecificData)
		if err == nil {
			d.SealedData, err = s.Seal(DocConnection, c.ID, dataField, plain)
		}
		if err != nil {
			return nil, fmt.Errorf("seal the provider data of connection %s: %w", c.ID, err)
		}
	}
	return json.Marshal(d)
}

// DecodeConnection reads the document of a connection. The entry's object holds the secrets in clear text.
func DecodeConnection(doc store.Document, s Sealer) (Entry[ConnectionInput], error) {
	e := Entry[ConnectionInput]{Meta: metaOf(doc)}
	var d storedConnection
	if err := json.Unmarshal(doc.Data, &d); err != nil {
		return e, fmt.Errorf("read connection %s: %w", doc.ID, err)
	}
	e.Object, e.CredentialRevision = d.ConnectionInput, d.CredentialRevision
	o := &e.Object
	o.ID = doc.ID
	for name, sealed := range d.Sealed {
		plain, err := s.Unseal(DocConnection, doc.ID, name, sealed)
		if err != nil {
			return e, fmt.Errorf("unseal %s of connection %s: %w", name, doc.ID, err)
		}
		switch name {
		case SecretAPIKey:
			o.APIKey = string(plain)
		case SecretAccessToken:
			o.AccessToken = string(plain)
		case SecretRefreshToken:
			o.RefreshToken = string(plain)
		default:
			if o.Secrets == nil {
				o.Secrets = map[string]string{}
			}
			o.Secrets[name] = string(plain)
		}
	}
	if len(d.SealedData) == 0 {
		return e, nil
	}
	plain, err := s.Unseal(DocConnection, doc.ID, dataField, d.SealedData)
	if err == nil {
		err = json.Unmarshal(plain, &o.ProviderSpecificData)
	}
	if err != nil {
		return e, fmt.Errorf("unseal the provider data of connection %s: %w", doc.ID, err)
	}
	return e, nil
}

// storedProtection is the document of a flag that is state, by the id of its connection (OBJ-5, API-70).
type storedProtection struct {
	Enabled bool `json:"enabled"`
}

// EncodeProtection makes the document that says whether a connection's limits are kept, whoever manages the connection.
func EncodeProtection(on bool) ([]byte, error) { return json.Marshal(storedProtection{on}) }

// DecodeProtection reads that document.
func DecodeProtection(doc store.Document) (bool, error) {
	var d storedProtection
	if err := json.Unmarshal(doc.Data, &d); err != nil {
		return false, fmt.Errorf("read the rate limit protection of connection %s: %w", doc.ID, err)
	}
	return d.Enabled, nil
}

// storedKey is the document of a client key: never its text.
type storedKey struct {
	KeyInput
	Hash []byte `json:"hash"`
	Hint string `json:"hint,omitempty"`
}

// EncodeKey makes the document of a client key. A text in k.Key is hashed; k.Hash stays otherwise.
func EncodeKey(k KeyInput) ([]byte, error) {
	d := storedKey{KeyInput: k, Hash: k.Hash, Hint: k.Hint}
	if k.Key != "" {
		hash := HashKey(k.Key)
		d.Hash, d.Hint = hash[:], Hint(k.Key)
	}
	return json.Marshal(d)
}

// DecodeKey reads the document of a client key.
func DecodeKey(doc store.Document) (Entry[KeyInput], error) {
	e := Entry[KeyInput]{Meta: metaOf(doc)}
	var d storedKey
	err := json.Unmarshal(doc.Data, &d)
	if err != nil {
		err = fmt.Errorf("read key %s: %w", doc.ID, err)
		d = storedKey{}
	}
	e.Object = d.KeyInput
	e.Object.ID, e.Object.Hash, e.Object.Hint = doc.ID, d.Hash, d.Hint
	return e, err
}

// EncodeCombo makes the document of a combo.
func EncodeCombo(c ComboInput) ([]byte, error) { return json.Marshal(c) }

// DecodeCombo reads the document of a combo. A comboCooldownWaitEnabled that is no boolean is ignored (CMB-47).
func DecodeCombo(doc store.Document) (Entry[ComboInput], error) {
	e, err := decode[ComboInput](doc)
	if err != nil {
		if mended, ok := withoutOddWait(doc.Data); ok {
			doc.Data = mended
			e, err = decode[ComboInput](doc)
		}
	}
	e.Object.Name = doc.ID
	return e, err
}

// withoutOddWait takes a comboCooldownWaitEnabled of another type out of a combo's document.
func withoutOddWait(data []byte) ([]byte, bool) {
	const name = "comboCooldownWaitEnabled"
	var combo, config map[string]json.RawMessage
	var flag bool
	if json.Unmarshal(data, &combo) != nil || json.Unmarshal(combo["config"], &config) != nil ||
		config[name] == nil || json.Unmarshal(config[name], &flag) == nil {
		return nil, false
	}
	delete(config, name)
	var err error
	if combo["config"], err = json.Marshal(config); err == nil {
		data, err = json.Marshal(combo)
	}
	return data, err == nil
}

// EncodeProvider makes the document of an operator's own provider.
func EncodeProvider(p ProviderInput) ([]byte, error) { return json.Marshal(p) }

// DecodeProvider reads the document of an operator's own provider.
func DecodeProvider(doc store.Document) (Entry[ProviderInput], error) {
	e, err := decode[ProviderInput](doc)
	e.Object.ID = doc.ID
	return e, err
}

// EncodeAlias makes the document of an alias.
func EncodeAlias(a AliasInput) ([]byte, error) { return json.Marshal(a) }

// DecodeAlias reads the document of an alias.
func DecodeAlias(doc store.Document) (Entry[AliasInput], error) {
	e, err := decode[AliasInput](doc)
	e.Object.Alias = doc.ID
	return e, err
}

// EncodeSettings makes the document of the stored settings.
func EncodeSettings(s settings.Stored) ([]byte, error) { return json.Marshal(s) }

// DecodeSettings reads the document of the stored settings.
func DecodeSettings(doc store.Document) (settings.Stored, error) {
	var s settings.Stored
	if err := json.Unmarshal(doc.Data, &s); err != nil {
		return nil, fmt.Errorf("read the stored settings: %w", err)
	}
	return s, nil
}

func decode[T any](doc store.Document) (Entry[T], error) {
	e := Entry[T]{Meta: metaOf(doc)}
	if err := json.Unmarshal(doc.Data, &e.Object); err != nil {
		return e, fmt.Errorf("read %s %s: %w", doc.Kind, doc.ID, err)
	}
	return e, nil
}

func metaOf(doc store.Document) Meta {
	return Meta{
		Revision: doc.Revision, ManagedBy: ByAPI,
		Created: time.UnixMilli(doc.Created).UTC(), Updated: time.UnixMilli(doc.Updated).UTC(),
	}
}
