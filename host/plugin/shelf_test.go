package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/plugin/trust"
)

// rule is a pack whose one rule gives a reason for a 403 of acme.
func rule(name, version, reason string) []byte {
	return fmt.Appendf(nil, "name: %s\nversion: %s\nkinds: [classifier]\nrules:\n- {id: r, status: [403], then: {reason: %s}}\n", name, version, reason)
}

// put must be accepted.
func put(t testing.TB, r *Runtime, name string, module []byte, o PutOptions) Report {
	t.Helper()
	rep, err := r.Put(context.Background(), name, module, o)
	if err != nil || !rep.OK {
		t.Fatalf("put %s: %v %+v", name, err, rep)
	}
	return rep
}

// refused is the code of the Problem, empty: there is none.
func refused(t testing.TB, err error, status int) string {
	t.Helper()
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		t.Fatalf("no problem: %v", err)
	}
	if p.Status != status || !strings.Contains(p.Message, " ") {
		t.Errorf("status %d %q, want %d", p.Status, p.Message, status)
	}
	return p.Code
}

func only(t testing.TB, r *Runtime, name string) Detail {
	t.Helper()
	d, ok := r.Detail(name)
	if !ok {
		t.Fatalf("no plugin %s", name)
	}
	return d
}

func TestPut(t *testing.T) { // PLG-10, PLG-15
	t.Parallel()
	r := started(t, Options{DataDir: t.TempDir()})
	rep := put(t, r, "acme", rule("acme", "1.0.0", "overloaded"), PutOptions{})
	var steps []string
	for _, s := range rep.Steps {
		if !s.OK {
			t.Errorf("step %+v", s)
		}
		steps = append(steps, s.Step)
	}
	if want := []string{StepRead, StepTrust, StepPrecheck, StepValidate, StepExamples, StepActivate}; !slices.Equal(steps, want) {
		t.Errorf("PLG-15: steps %v, want %v", steps, want)
	}
	if rep.Name != "acme" || rep.Version != "1.0.0" || len(rep.Digest) != 64 || len(rep.Warnings) != 1 {
		t.Errorf("%+v", rep)
	}
	if says(r) != "overloaded" {
		t.Error("PLG-10: not in force when the put is acknowledged")
	}
	d := only(t, r, "acme")
	if d.Origin != OriginAPI || d.Mode != ModeActive || d.State != StateActive || d.Digest != rep.Digest || d.Loader != loaderPack || d.Size == 0 ||
		d.LoadedAt.IsZero() || d.Rules != 1 || d.SignedBy != nil || d.Shadow != nil || d.Fault != nil || !strings.Contains(string(d.Manifest), `"acme"`) {
		t.Errorf("PLG-15: %+v", d)
	}

	rep, err := r.Put(t.Context(), "acme", []byte("name: acme\nversion: 2.0.0\nkinds: [classifier]\nrules:\n- {id: r, status: [403], then: {reason: nonsense}}\n"), PutOptions{})
	if err != nil || rep.OK || rep.Fault == nil || rep.Fault.Line != 5 || rep.Steps[len(rep.Steps)-1].Step != StepValidate || rep.Steps[len(rep.Steps)-1].OK {
		t.Errorf("PLG-2: %v %+v", err, rep)
	}
	if d := only(t, r, "acme"); says(r) != "overloaded" || d.Version != "1.0.0" || d.State != StateActive || d.Fault == nil || d.Fault.Line != 5 {
		t.Errorf("PLG-2: a version with a fault replaced a working one, or the fault does not show: %+v", d)
	}
	if rep, err := r.Put(t.Context(), "acme", rule("other", "1.0.0", "overloaded"), PutOptions{}); err != nil || rep.OK || rep.Fault.Code != CodeNameDiffers {
		t.Errorf("a manifest of another name: %v %+v", err, rep)
	}
	if rep, err := r.Put(t.Context(), "acme", append([]byte{0}, "asmx"...), PutOptions{}); err != nil || rep.OK || rep.Fault.Code != CodeNotWasm {
		t.Errorf("PLG-14: %v %+v", err, rep)
	}
	_, err = r.Put(t.Context(), "acme", rule("acme", "1.0.0", "overloaded"), PutOptions{Mode: "loud"})
	if refused(t, err, 400) != CodeBadMode {
		t.Error(err)
	}
	_, err = r.Put(t.Context(), "../acme", rule("acme", "1.0.0", "overloaded"), PutOptions{})
	if refused(t, err, 400) != CodeBadName {
		t.Error(err)
	}
	if _, ok := r.Detail("nobody"); ok {
		t.Error("a plugin that is not there")
	}
}

func TestCheckChangesNothing(t *testing.T) { // PLG-10, PLG-2
	t.Parallel()
	r := started(t, Options{Trust: trust.Policy{Mode: trust.Locked}})
	rep := r.Check(t.Context(), rule("acme", "1.0.0", "overloaded"))
	if !rep.OK || rep.Name != "acme" || rep.Steps[len(rep.Steps)-1].Step != StepActivate || len(r.List()) != 0 || says(r) != "" {
		t.Errorf("%+v, %d plugins", rep, len(r.List()))
	}
	if rep := r.Check(t.Context(), []byte("#!/bin/sh")); rep.OK || rep.Fault.Code != CodeNotWasm {
		t.Errorf("PLG-14: %+v", rep)
	}
	if rep := r.Check(t.Context(), []byte("name: [")); rep.OK || rep.Fault.Code != CodeBadYAML || rep.Fault.Line != 1 {
		t.Errorf("%+v", rep)
	}
}

// What was acknowledged survives the process: version, candidate, modes and the way back (PLG-10, PLG-4, DATA-2). The first runtime
// is not closed before the second one reads, as after kill -9.
func TestPutSurvivesAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	builtins := []Builtin{{Name: "base", YAML: rule("base", "1.0.0", "banned")}}
	r := started(t, Options{DataDir: dir, Builtins: builtins})
	put(t, r, "acme", rule("acme", "1.0.0", "overloaded"), PutOptions{})
	put(t, r, "acme", rule("acme", "2.0.0", "quota_exhausted"), PutOptions{})
	put(t, r, "acme", rule("acme", "3.0.0", "model_not_found"), PutOptions{Mode: ModeShadow})
	if err := r.SetMode(t.Context(), "base", ModeOff); err != nil {
		t.Fatal(err)
	}
	again := started(t, Options{DataDir: dir, Builtins: builtins})
	d := only(t, again, "acme")
	if says(again) != "quota_exhausted" || d.Version != "2.0.0" || d.Candidate == nil || d.Candidate.Version != "3.0.0" || d.Shadow == nil {
		t.Errorf("PLG-4, PLG-10: %q %+v", says(again), d)
	}
	if b := only(t, again, "base"); b.Mode != ModeOff || b.State != StateDisabled {
		t.Errorf("PLG-4: the mode is forgotten: %+v", b)
	}
	if err := again.Rollback(t.Context(), "acme"); err != nil || says(again) != "overloaded" {
		t.Errorf("PLG-10: rollback after a restart: %v, %q", err, says(again))
	}
	third := started(t, Options{DataDir: dir, Builtins: builtins})
	if says(third) != "overloaded" {
		t.Errorf("PLG-10: a rollback does not survive: %q", says(third))
	}
	if refused(t, third.Rollback(t.Context(), "acme"), 409) != CodeNoEarlier {
		t.Error("a rollback beyond the oldest version")
	}
}

func TestVersions(t *testing.T) { // PLG-15, PLG-11
	t.Parallel()
	r := started(t, Options{})
	for i := range 12 {
		put(t, r, "acme", rule("acme", fmt.Sprintf("1.0.%d", i), "overloaded"), PutOptions{})
	}
	put(t, r, "acme", rule("acme", "2.0.0", "banned"), PutOptions{Mode: ModeShadow})
	list, ok := r.Versions("acme")
	if !ok || len(list) != 11 { // ten, and the candidate
		t.Fatalf("%d versions", len(list))
	}
	active := 0
	for _, v := range list {
		if len(v.Digest) != 64 || v.AddedAt.IsZero() || v.Origin != OriginAPI {
			t.Errorf("%+v", v)
		}
		if v.Active {
			active++
			if v.Version != "1.0.11" || v.State != StateActive {
				t.Errorf("%+v", v)
			}
		}
		if v.Candidate != (v.Version == "2.0.0") || !v.Active && !v.Candidate && v.State != StateDisabled {
			t.Errorf("%+v", v)
		}
	}
	if active != 1 {
		t.Errorf("%d active versions", active)
	}
	if _, ok := r.Versions("nobody"); ok {
		t.Error("versions of nobody")
	}
}

// One name from three places: the folder wins over the API, that over the program; what is hidden is listed as disabled and takes over
// when the winner goes (PLG-16, PLG-10).
func TestOneNameFromThreePlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "acme.yaml")
	r := started(t, Options{Dir: dir, DataDir: t.TempDir(), Builtins: []Builtin{{Name: "acme", YAML: rule("acme", "1.0.0", "banned")}}})
	if says(r) != "banned" {
		t.Fatal(says(r))
	}
	if refused(t, r.Remove(t.Context(), "acme"), 409) != CodeBuiltin {
		t.Error("PLG-10: a built-in plugin was removed")
	}
	if refused(t, r.Rollback(t.Context(), "acme"), 409) != CodeBuiltin {
		t.Error("PLG-10: a built-in plugin was rolled back")
	}
	put(t, r, "acme", rule("acme", "2.0.0", "overloaded"), PutOptions{})
	if says(r) != "overloaded" {
		t.Errorf("PLG-16: the API's does not override the built-in one: %q", says(r))
	}
	write(t, file, string(rule("acme", "3.0.0", "quota_exhausted")))
	eventually(t, "PLG-16 the folder wins", func() bool { return says(r) == "quota_exhausted" })
	d := only(t, r, "acme")
	if d.Origin != OriginFolder || len(d.Hidden) != 2 || d.Hidden[0].State != StateDisabled || d.Hidden[1].State != StateDisabled {
		t.Errorf("PLG-16: %+v", d)
	}
	_, err := r.Put(t.Context(), "acme", rule("acme", "4.0.0", "banned"), PutOptions{})
	if refused(t, err, 409) != CodeManagedByFile {
		t.Error("PLG-15: a file was replaced through the API")
	}
	if refused(t, r.Rollback(t.Context(), "acme"), 409) != CodeManagedByFile {
		t.Error("PLG-15: a file was rolled back through the API")
	}
	if err := r.SetMode(t.Context(), "acme", ModeOff); err != nil || says(r) != "" {
		t.Errorf("PLG-15: a file may be switched: %v %q", err, says(r))
	}
	if err := r.SetMode(t.Context(), "acme", ModeActive); err != nil || says(r) != "quota_exhausted" {
		t.Errorf("PLG-4: %v %q", err, says(r))
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "PLG-16 the API's takes over", func() bool { return says(r) == "overloaded" })
	if err := r.Remove(t.Context(), "acme"); err != nil || says(r) != "banned" {
		t.Errorf("PLG-16: the built-in one takes over: %v %q", err, says(r))
	}
	if refused(t, r.Remove(t.Context(), "nobody"), 404) != CodeNotFound {
		t.Error("nobody was removed")
	}
}

func TestModes(t *testing.T) { // PLG-4
	t.Parallel()
	r := started(t, Options{
		Modes:    map[string]string{"set-by-file": ModeOff},
		Builtins: []Builtin{{Name: "a", YAML: rule("set-by-file", "1.0.0", "banned")}, {Name: "b", YAML: rule("acme", "1.0.0", "overloaded")}},
	})
	if refused(t, r.SetMode(t.Context(), "set-by-file", ModeActive), 409) != CodeManagedByFile {
		t.Error("PLG-4: the API changed what the configuration file sets")
	}
	if refused(t, r.SetMode(t.Context(), "acme", "loud"), 400) != CodeBadMode || refused(t, r.SetMode(t.Context(), "nobody", ModeOff), 404) != CodeNotFound {
		t.Error("PLG-4")
	}
	for _, c := range []struct{ mode, state, says string }{
		{ModeOff, StateDisabled, ""}, {ModeShadow, StateActive, ""}, {ModeActive, StateActive, "overloaded"},
	} {
		if err := r.SetMode(t.Context(), "acme", c.mode); err != nil {
			t.Fatal(err)
		}
		if d := only(t, r, "acme"); d.Mode != c.mode || d.State != c.state || says(r) != c.says || (d.Shadow != nil) != (c.mode == ModeShadow) {
			t.Errorf("PLG-4 %s: %q %+v", c.mode, says(r), d.Status)
		}
	}
	r.Configure(t.Context(), map[string]string{"acme": ModeOff}, nil)
	if says(r) == "overloaded" || only(t, r, "acme").Mode != ModeOff {
		t.Error("PLG-4: the configuration file does not win")
	}
}

func TestCandidates(t *testing.T) { // PLG-4
	t.Parallel()
	dir := t.TempDir()
	r := started(t, Options{Dir: dir, DataDir: t.TempDir()})
	put(t, r, "acme", rule("acme", "1.0.0", "overloaded"), PutOptions{})
	if refused(t, r.Promote(t.Context(), "acme"), 404) != CodeNoCandidate || refused(t, r.DropCandidate(t.Context(), "nobody"), 404) != CodeNotFound {
		t.Error("PLG-4: a candidate that is not there")
	}
	put(t, r, "acme", rule("acme", "2.0.0", "banned"), PutOptions{Mode: ModeShadow})
	put(t, r, "acme", rule("acme", "2.0.1", "quota_exhausted"), PutOptions{Mode: ModeShadow})
	d := only(t, r, "acme")
	if says(r) != "overloaded" || d.Version != "1.0.0" || d.Candidate == nil || d.Candidate.Version != "2.0.1" || !d.Candidate.Candidate || d.Candidate.Mode != ModeShadow {
		t.Errorf("PLG-4: %q %+v", says(r), d)
	}
	if n := len(r.List()); n != 2 {
		t.Errorf("PLG-4: %d rows, want the active version and one candidate", n)
	}
	write(t, filepath.Join(dir, "acme.shadow.yaml"), string(rule("acme", "3.0.0", "banned")))
	eventually(t, "a second candidate is refused", func() bool { f := byFile(r, "acme.shadow.yaml").Fault; return f != nil && f.Code == CodeNameTaken })
	if err := r.DropCandidate(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "PLG-4 a file is the candidate", func() bool { d := only(t, r, "acme"); return d.Candidate != nil && d.Candidate.Version == "3.0.0" })
	if says(r) != "overloaded" || refused(t, r.Promote(t.Context(), "acme"), 409) != CodeManagedByFile {
		t.Errorf("PLG-4: %q", says(r))
	}
	if err := os.Remove(filepath.Join(dir, "acme.shadow.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "PLG-4 the file is gone", func() bool { return only(t, r, "acme").Candidate == nil })

	put(t, r, "acme", rule("acme", "4.0.0", "quota_exhausted"), PutOptions{Mode: ModeShadow})
	if err := r.Promote(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if d := only(t, r, "acme"); says(r) != "quota_exhausted" || d.Version != "4.0.0" || d.Candidate != nil || len(r.List()) != 1 {
		t.Errorf("PLG-4: promoted %q %+v", says(r), d)
	}
	if err := r.Rollback(t.Context(), "acme"); err != nil || says(r) != "overloaded" {
		t.Errorf("PLG-10: %v %q", err, says(r))
	}
}

func TestGrants(t *testing.T) { // PLG-12, PLG-16
	t.Parallel()
	asks := func(version string) []byte {
		return []byte("name: acme\nversion: " + version + "\nkinds: [classifier]\npermissions: {kv: {bytes: 100, reason: x}, terminate: {reason: y}, http: {hosts: [a.test, b.test], reason: z}}\n")
	}
	data := t.TempDir()
	r := started(t, Options{DataDir: data, Builtins: []Builtin{{Name: "base", YAML: rule("base", "1.0.0", "banned")}}})
	one := put(t, r, "acme", asks("1.0.0"), PutOptions{Grants: &Grants{HTTPHosts: []string{"a.test"}}, Source: "test"})
	if g := only(t, r, "acme").Granted; !slices.Equal(g.HTTPHosts, []string{"a.test"}) || g.Terminate || g.KVBytes != 0 {
		t.Errorf("PLG-12: %+v", g)
	}
	_, err := r.Put(t.Context(), "acme", asks("1.1.0"), PutOptions{Grants: &Grants{HTTPHosts: []string{"evil.test"}}})
	if refused(t, err, 400) != CodeGrantTooWide || only(t, r, "acme").Version != "1.0.0" {
		t.Errorf("PLG-15: granted more than the manifest asks for: %v", err)
	}
	for _, wide := range []Grants{{KVBytes: 101}, {Secrets: Secrets{"key": {}}}, {Providers: []string{"openai"}}, {HTTPPrivate: []string{"a.test"}}} {
		if refused(t, r.Grant(t.Context(), "acme", wide), 400) != CodeGrantTooWide {
			t.Errorf("PLG-15: granted %+v", wide)
		}
	}
	if refused(t, r.Grant(t.Context(), "base", Grants{}), 409) != CodeBuiltin || refused(t, r.Grant(t.Context(), "nobody", Grants{}), 404) != CodeNotFound {
		t.Error("PLG-12")
	}
	if err := r.Grant(t.Context(), "acme", Grants{KVBytes: 50, Terminate: true}); err != nil {
		t.Fatal(err)
	}
	if g := only(t, r, "acme").Granted; g.KVBytes != 50 || !g.Terminate || len(g.HTTPHosts) != 0 {
		t.Errorf("PLG-12: %+v", g)
	}
	put(t, r, "acme", asks("2.0.0"), PutOptions{})
	if g := only(t, r, "acme").Granted; g.KVBytes != 0 || g.Terminate {
		t.Errorf("PLG-16: another digest of the name inherited the grant: %+v", g)
	}
	if err := r.Rollback(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	again := started(t, Options{DataDir: data})
	if d := only(t, again, "acme"); d.Digest != one.Digest || d.Granted.KVBytes != 50 || !d.Granted.Terminate {
		t.Errorf("PLG-12: the grant of the digest is forgotten: %+v", d.Granted)
	}
}

// A file of the folder keeps its grant as long as it is the same file, and may be granted through the API (PLG-15, PLG-16).
func TestGrantsOfAFile(t *testing.T) { // PLG-12
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "acme.yaml")
	text := "name: acme\nversion: 1.0.0\nkinds: [classifier]\npermissions: {kv: {bytes: 100, reason: x}}\n"
	write(t, file, text)
	r := started(t, Options{Dir: dir, DataDir: t.TempDir()})
	if g := only(t, r, "acme").Granted; g.KVBytes != 0 {
		t.Errorf("ABI-11: granted without a word: %+v", g)
	}
	if err := r.Grant(t.Context(), "acme", Grants{KVBytes: 70}); err != nil {
		t.Fatal(err)
	}
	if g := only(t, r, "acme").Granted; g.KVBytes != 70 {
		t.Errorf("PLG-12: in force when the grant is acknowledged: %+v", g)
	}
	write(t, file, text+"summary: another file\n")
	eventually(t, "PLG-16 another digest has no grant", func() bool { return only(t, r, "acme").Summary != "" && only(t, r, "acme").Granted.KVBytes == 0 })
	write(t, file, text)
	eventually(t, "PLG-16 the first digest has it again", func() bool { return only(t, r, "acme").Granted.KVBytes == 70 })
}

// Puts, promotions and rollbacks under load: every call is answered by some good version (PLG-3, PLG-10).
func TestPutUnderLoad(t *testing.T) {
	t.Parallel()
	patient := Settings{Limits: Limits{WallMS: map[string]int64{"classify": 1000}}} // on a machine that runs other tests too
	r := started(t, Options{DataDir: t.TempDir(), Settings: map[string]Settings{"acme": patient}})
	guest := func(i int) []byte {
		return module{manifest: strings.Replace(hookManifest, "1.0.0", fmt.Sprintf("1.0.%d", i), 1), answer: `{"reason":"overloaded"}`}.wasm()
	}
	put(t, r, "acme", guest(0), PutOptions{})
	calls, stop := busyWith(t, r, func(s *Set) error {
		if v, ok := judge(s, "acme").Classify(context.Background(), failed("acme", "m", 403, "x")); !ok || v.Reason != "overloaded" {
			return fmt.Errorf("no verdict: %+v %v", v, ok)
		}
		return nil
	})
	for i := range 4 {
		put(t, r, "acme", guest(3*i+1), PutOptions{})
		put(t, r, "acme", guest(3*i+2), PutOptions{Mode: ModeShadow})
		if err := errors.Join(r.Promote(t.Context(), "acme"), r.Rollback(t.Context(), "acme")); err != nil {
			t.Fatal(err)
		}
		if err := r.SetMode(t.Context(), "acme", ModeActive); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if calls.Load() == 0 {
		t.Error("nobody called")
	}
	if d := only(t, r, "acme"); d.Counters.Violations["trap"] != 0 || d.Counters.Busy != 0 {
		t.Errorf("PLG-3: %+v", d.Counters)
	}
}

func TestTrial(t *testing.T) { // PLG-9
	t.Parallel()
	r := started(t, Options{Builtins: []Builtin{{Name: "acme", YAML: rule("acme", "1.0.0", "overloaded")}}})
	trial, err := r.Trial(t.Context(), rule("acme", "2.0.0", "banned"))
	if err != nil {
		t.Fatal(err)
	}
	before := only(t, r, "acme").Counters.Rules
	v, ok := trial.Judge(&catalog.Provider{ID: "acme"}).Classify(t.Context(), failed("acme", "m", 403, "x"))
	if !ok || v.Reason != "banned" || v.Digest != trial.Digest() || trial.Name() != "acme" {
		t.Errorf("%+v", v)
	}
	if d := only(t, r, "acme"); d.Version != "1.0.0" || d.Counters.Rules != before || len(r.List()) != 1 || says(r) != "overloaded" {
		t.Errorf("PLG-9: a trial changed something: %+v", d)
	}
	trial.Close()
	if _, err := r.Trial(t.Context(), []byte("name: [")); err == nil || !strings.Contains(err.Error(), CodeBadYAML) {
		t.Error(err)
	}
}
