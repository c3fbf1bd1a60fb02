package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// agent is a command-line agent and how it is told of the gateway.
type agent struct {
	name   string
	pack   string                                        // of npm, with its version
	binary string                                        // below node_modules/.bin
	files  func(gateway, model string) map[string]string // written into its home before the run
	args   func(gateway, model, prompt string) []string
	env    func(gateway, model string) []string
}

// agentTime is how long a one-shot prompt may take.
const agentTime = 2 * time.Minute

// The agents, at the versions that were tried.
var agents = []agent{
	{
		name: "claude-code", pack: "@anthropic-ai/claude-code@2.1.332", binary: "claude",
		args: func(_, model, prompt string) []string {
			return []string{"-p", prompt, "--model", model, "--allowedTools", "Read"}
		},
		env: func(gateway, model string) []string {
			return []string{"ANTHROPIC_BASE_URL=" + gateway, "ANTHROPIC_AUTH_TOKEN=" + clientKey, "ANTHROPIC_SMALL_FAST_MODEL=" + model,
				"ANTHROPIC_DEFAULT_HAIKU_MODEL=" + model, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}
		},
	},
	{
		name: "codex", pack: "@openai/codex@0.171.0", binary: "codex",
		args: func(gateway, model, prompt string) []string {
			return []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", model, "-c", "model_provider=weir",
				"-c", fmt.Sprintf(`model_providers.weir={name="weir",base_url="%s/v1",wire_api="responses",env_key="WEIR_KEY"}`, gateway), prompt}
		},
		env: func(string, string) []string { return []string{"WEIR_KEY=" + clientKey} },
	},
	{
		name: "opencode", pack: "opencode-ai@1.18.33", binary: "opencode",
		files: func(gateway, model string) map[string]string {
			return map[string]string{"opencode.json": fmt.Sprintf(`{"$schema":"https://opencode.ai/config.json","autoupdate":false,"share":"disabled",`+
				`"provider":{"weir":{"npm":"@ai-sdk/openai-compatible","name":"weir","options":{"baseURL":"%s/v1","apiKey":"%s"},"models":{"%s":{}}}},`+
				`"model":"weir/%s","small_model":"weir/%s","permission":{"*":"allow"}}`, gateway, clientKey, model, model, model)}
		},
		args: func(_, model, prompt string) []string { return []string{"run", "-m", "weir/" + model, prompt} },
	},
	{
		name: "gemini-cli", pack: "@google/gemini-cli@0.61.0", binary: "gemini",
		files: func(string, string) map[string]string {
			return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`}
		},
		args: func(_, model, prompt string) []string {
			return []string{"-p", prompt, "-m", model, "--yolo", "--skip-trust"}
		},
		env: func(gateway, _ string) []string {
			return []string{"GEMINI_API_KEY=" + clientKey, "GOOGLE_GEMINI_BASE_URL=" + gateway, "GEMINI_CLI_NO_RELAUNCH=true"}
		},
	},
	{
		name: "qwen-code", pack: "@qwen-code/qwen-code@0.24.4", binary: "qwen",
		args: func(_, model, prompt string) []string {
			return []string{"-p", prompt, "-m", model, "--yolo", "--auth-type", "openai"}
		},
		env: func(gateway, model string) []string {
			return []string{"OPENAI_API_KEY=" + clientKey, "OPENAI_BASE_URL=" + gateway + "/v1", "OPENAI_MODEL=" + model}
		},
	},
}

func (p *packages) agentBinary(a agent) string {
	return filepath.Join(p.cache, "agents", a.name, "node_modules", ".bin", a.binary)
}

// agents installs those that are not there yet. One that cannot be installed is left out with a word.
func (p *packages) agents(ctx context.Context) error {
	for _, a := range agents {
		if _, err := os.Stat(p.agentBinary(a)); err == nil {
			continue
		}
		fmt.Fprintf(p.out, "clients: installing %s\n", a.pack)
		if err := p.npm(ctx, filepath.Join(p.cache, "agents", a.name), false, a.pack); err != nil {
			fmt.Fprintf(p.out, "clients: %s is left out: %v\n", a.name, err)
		}
	}
	return ctx.Err()
}

// agentScenarios are what an agent is asked: a plain answer, and one for which it has to read a file by a tool.
var agentScenarios = []string{"text", "tool"}

func (l *lab) playAgents(ctx context.Context, upstream, model string, line func(string)) error {
	only := strings.Split(l.s.only, ",")
	for _, a := range agents {
		if l.s.only != "" && !slices.Contains(only, a.name) {
			continue
		}
		if _, err := os.Stat(l.p.agentBinary(a)); err != nil {
			continue
		}
		for _, scenario := range agentScenarios {
			began := time.Now()
			word, why := "pass", ""
			if err := l.ask(ctx, a, scenario, model, upstream); err != nil {
				word, why = "fail", err.Error()
			}
			line(fmt.Sprintf("%s %s %s %s (%d ms)", a.name, scenario, word, why, time.Since(began).Milliseconds()))
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// agentWord is what the file holds that an agent is told to read; the mock repeats what a tool gave.
const agentWord = "heron-4711"

// ask runs one prompt in a home and a folder of its own.
func (l *lab) ask(ctx context.Context, a agent, scenario, model, upstream string) error {
	ctx, cancel := context.WithTimeout(ctx, agentTime)
	defer cancel()
	home := filepath.Join(l.dir, a.name+"-"+upstream+"-"+scenario)
	files := map[string]string{"note.txt": agentWord + "\n"}
	if a.files != nil {
		for name, text := range a.files(l.gateway, model) {
			files[name] = text
		}
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	prompt := fmt.Sprintf("Please answer. [[mock:%s:cli-%s-%s]] FILE=%s", scenario, a.name, upstream, filepath.Join(home, "note.txt"))
	cmd := exec.CommandContext(ctx, l.p.agentBinary(a), a.args(l.gateway, model, prompt)...)
	cmd.Dir = home
	cmd.Env = l.p.env("HOME="+home, "PWD="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "XDG_DATA_HOME="+filepath.Join(home, ".local"),
		"XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "CI=1", "NO_COLOR=1")
	if a.env != nil {
		cmd.Env = append(cmd.Env, a.env(l.gateway, model)...)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	want := "MOCK-OK"
	if scenario == "tool" {
		want = agentWord
	}
	if !strings.Contains(out.String(), want) {
		said := strings.Join(strings.Fields(out.String()), " ")
		return fmt.Errorf("no %s in what it printed (%v): %s", want, err, said[max(0, len(said)-200):])
	}
	return nil
}
