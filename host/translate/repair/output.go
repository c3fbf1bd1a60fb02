package repair

// OutputTool is the one forced tool that stands in for structured output where a provider has none (TR-22).
const OutputTool = "structured_output"
